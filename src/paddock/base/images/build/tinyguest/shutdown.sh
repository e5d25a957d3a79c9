#!/bin/sh
# shutdown -P|-H|-r ...: as the guest agent calls it.
case " $* " in
*" -r "*) exec reboot ;;
*" -H "*) exec halt ;;
*) exec poweroff ;;
esac
